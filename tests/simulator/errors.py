"""The ways a request is refused, each with the status and the text that Proxmox VE gives."""

from __future__ import annotations


class ApiError(Exception):
    """A refusal: HTTP status, message (its first line becomes the reason phrase) and per-parameter
    errors.
    """

    def __init__(
        self,
        status: int,
        message: str,
        errors: dict[str, str] | None = None,
        *,
        empty: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors
        self.empty = empty

    @property
    def text(self) -> str:
        """The message as one task log or exit status line."""
        if not self.errors:
            return self.message.rstrip("\n")
        lines = [f"{self.status} {self.message.rstrip()}"]
        lines += [f"{key}: {value.rstrip()}" for key, value in self.errors.items()]
        return "\n".join(lines)


class PveError(ApiError):
    """A plain failure: status 500 with the text Proxmox VE dies with."""

    def __init__(self, message: str) -> None:
        super().__init__(500, message if message.endswith("\n") else message + "\n")


class ParamError(ApiError):
    """Refused parameters: status 400 with one text for each of them."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__(400, "Parameter verification failed.\n", errors)


class PermError(ApiError):
    """A missing privilege: status 403."""

    def __init__(self, what: str | None = None) -> None:
        suffix = "" if what is None else f" ({what})"
        super().__init__(403, f"Permission check failed{suffix}\n")


class AuthError(ApiError):
    """No or wrong credentials: status 401, shown by the reason phrase alone."""

    def __init__(self, reason: str) -> None:
        super().__init__(401, reason, empty=True)


class NotImplementedHere(ApiError):
    """A path or method that the API does not have: status 501."""

    def __init__(self, method: str, path: str) -> None:
        super().__init__(501, f"Method '{method} {path}' not implemented")


class ProxyError(ApiError):
    """A node that does not answer the node that was asked: 595, 596 or 599, shown by the reason
    alone.
    """

    def __init__(self, reason: str, status: int = 595) -> None:
        super().__init__(status, reason, empty=True)


class UnknownVerb(ApiError):
    """A method of HTTP that the API takes on no path: status 501, shown by the reason alone."""

    def __init__(self, method: str) -> None:
        super().__init__(501, f"method '{method}' not available", empty=True)
