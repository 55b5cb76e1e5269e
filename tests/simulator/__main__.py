"""`pve-simulator`, in a clone `python -m tests.simulator`: starts the server and prints its
address.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import shutil
import signal
import sys
import tempfile
from pathlib import Path

if __package__ in (None, ""):  # started as a file or directory
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    __package__ = "tests.simulator"

from .options import Options, UsageError, parse
from .web.listen import listening


async def serve(options: Options, directory: Path) -> None:
    """Serve until a signal comes."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with listening(options, directory) as ports:
        print(f"ready {ports.url}", flush=True)
        print(f"ca {ports.ca_file}", flush=True)
        if options.control:
            print(f"control {ports.control_url}", flush=True)
        gc.collect()
        gc.freeze()
        await stop.wait()


def main(argv: list[str] | None = None) -> int:
    """Run; the exit status is 2 when it was started wrongly."""
    own: Path | None = None
    try:
        options = parse(argv)
        directory = options.ca_dir
        if directory is None:
            directory = own = Path(tempfile.mkdtemp(prefix="pve-simulator-"))
        with contextlib.suppress(ImportError):
            import uvloop

            asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
        asyncio.run(serve(options, directory))
    except UsageError as error:
        print(f"simulator: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    finally:
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
