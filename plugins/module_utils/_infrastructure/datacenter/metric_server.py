# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of metric servers (pve-manager: PVE/API2/Cluster/MetricServer.pm, PVE/Status)."""

from __future__ import annotations

from ..._foundation.api.interface import Api
from ..._foundation.core import validate
from ..._foundation.resource.table import Call, DesiredResource, Field, Key, ResourceChange, Table
from ..._foundation.resource.values import flag_field, host_field, number_field, secret, text_field

_GRAPHITE, _INFLUX, _OTEL = ("graphite",), ("influxdb",), ("opentelemetry",)


def precheck(_client: Api, _desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Return a warning about a disabled server that PVE connects to nevertheless
    (PVE/Status/OpenTelemetry.pm, test_connection).
    """
    values = {**change.before, **change.sets}
    if change.deletes or not values.get("disable") or values.get("type") not in _OTEL:
        return ()
    text = "Proxmox VE connects to a metric server of this type even if it is disabled"
    return (f"{text}: the change fails if the server does not answer",)


METRIC_SERVER = Table(
    kind="metric_server",
    title="metric server",
    keys=(Key("name", "id", validate.config_id),),
    fields=(
        text_field("type", fixed=True, required=True),
        host_field("server", required=True, always=True),
        number_field("server_port", 0, name="port", required=True, always=True),
        flag_field("disable"),
        number_field("mtu", 1500, variants=(*_GRAPHITE, *_INFLUX)),
        number_field("timeout_seconds", 1, name="timeout", variants=(*_GRAPHITE, *_INFLUX)),
        text_field("proto", default="udp", variants=_GRAPHITE),
        text_field("path", default="proxmox", variants=_GRAPHITE),
        Field(
            "influxdb_proto",
            "influxdbproto",
            read=lambda value: str(value or "udp"),
            variants=_INFLUX,
        ),
        text_field("organization", default="proxmox", variants=_INFLUX),
        text_field("bucket", default="proxmox", variants=_INFLUX),
        text_field("api_path_prefix", variants=_INFLUX),
        number_field("max_body_size", 25000000, name="max-body-size", variants=_INFLUX),
        flag_field("verify_certificate", default=True, variants=_INFLUX),
        text_field("otel_protocol", default="https", variants=_OTEL),
        text_field("otel_path", default="/v1/metrics", variants=_OTEL),
        number_field("otel_timeout_seconds", 5, name="otel-timeout", variants=_OTEL),
        number_field("otel_max_body_size", 10000000, name="otel-max-body-size", variants=_OTEL),
        text_field("otel_compression", default="gzip", variants=_OTEL),
        text_field("otel_resource_attributes", variants=_OTEL),
        flag_field("otel_verify_ssl", default=True, variants=_OTEL),
    ),
    secrets=(secret("token", "token", _INFLUX), secret("otel_headers", "otel-headers", _OTEL)),
    variant="type",
    digest=("PUT",),
    list_call=Call(("cluster", "metrics", "server")),
    read_call=Call(("cluster", "metrics", "server", "{name}")),
    list_is_whole=False,
    precheck=precheck,
)
