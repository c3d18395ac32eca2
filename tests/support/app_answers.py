"""What the servers of the built apps answer, as data: the few answers that their start pages and routes ask for.

A key is `METHOD path`, with its query and, behind a blank, the request's body where these tell answers apart.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CannedAnswer:
    """An answer of a server: its body, media type and status."""

    body: bytes
    media_type: str = "application/json"
    status: int = 200


def of_json(value: Any, status: int = 200) -> CannedAnswer:
    """Return a value as an answer in JSON."""
    return CannedAnswer(json.dumps(value).encode(), status=status)


def of_html(text: str) -> CannedAnswer:
    """Return a page as an answer."""
    return CannedAnswer(text.encode(), "text/html; charset=utf-8")


def tile(x: int, y: int) -> CannedAnswer:
    """Return a tile of a map: a PNG of one colour, which its place decides."""
    rows = (b"\0" + bytes((80 * x % 256, 80 * y % 256, 128)) * 8) * 8
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
    return CannedAnswer(b"\x89PNG\r\n\x1a\n" + b"".join(chunks), "image/png")


# -- Locust: the arguments of its page, and a test that runs --------------------------------------------------------

LOCUST_ARGUMENTS = json.dumps(
    {
        "locustfile": "locustfile.py", "state": "ready", "is_distributed": False, "user_count": 0, "version": "2.47.0",
        "host": "http://shop.test", "history": [], "override_host_warning": False, "missing_host_warning": False,
        "num_users": 3, "spawn_rate": 1, "worker_count": 0, "hide_common_options": False,
        "shape_use_common_options": False, "stats_history_enabled": False, "tasks": "{}", "extra_options": {},
        "run_time": None, "show_userclass_picker": False, "available_user_classes": None,
        "available_shape_classes": ["Default"], "available_user_tasks": None, "users": None,
        "percentiles_to_chart": [0.5, 0.95], "percentiles_to_statistics": [0.5, 0.95], "is_host_required": False,
        "profile": None,
    }
)  # fmt: skip
_LOCUST_ROW = {
    "method": "GET", "name": "/hills", "safe_name": "/hills", "num_requests": 7, "num_failures": 0,
    "min_response_time": 1, "max_response_time": 9, "current_rps": 0.5, "current_fail_per_sec": 0,
    "avg_response_time": 3, "median_response_time": 3, "total_rps": 0.5, "total_fail_per_sec": 0,
    "avg_content_length": 77, "response_time_percentile_0.5": 3, "response_time_percentile_0.95": 9,
}  # fmt: skip
LOCUST: Mapping[str, CannedAnswer] = {
    "GET /stats/requests": of_json(
        {
            "stats": [_LOCUST_ROW, _LOCUST_ROW | {"method": None, "name": "Aggregated", "safe_name": "Aggregated"}],
            "errors": [], "current_rps": 0.5, "current_fail_per_sec": 0, "total_rps": 0.5, "total_fail_per_sec": 0,
            "fail_ratio": 0, "total_avg_response_time": 3, "current_response_time_percentiles":
            {"response_time_percentile_0.5": 3, "response_time_percentile_0.95": 9},
            "state": "running", "user_count": 3,
        }
    ),
    "GET /exceptions": of_json({"exceptions": []}),
    "GET /tasks": of_json({"per_class": {}, "total": {}}),
    "GET /logs": of_json({"master": [], "workers": {}}),
    "GET /worker-count": of_json(0),
}  # fmt: skip


# -- Lilac: a dataset --------------------------------------------------------------------------------------------------

LILAC: Mapping[str, CannedAnswer] = {
    "GET /api/v1/concepts/": of_json([]),
    "GET /api/v1/signals/": of_json([]),
    "GET /api/v1/signals/embeddings": of_json([]),
    "GET /api/v1/tasks/": of_json({"tasks": {}, "progress": None}),
    "GET /api/v1/datasets/": of_json(
        [{"namespace": "rome", "dataset_name": "hills", "description": None, "tags": [], "source": {}}]
    ),
    "GET /auth_info": of_json(
        {
            "user": None, "auth_enabled": False, "huggingface_space_id": None,
            "access": {
                "create_dataset": False, "is_admin": False,
                "dataset": {"compute_signals": False, "delete_dataset": False, "delete_signals": False,
                            "update_settings": False, "create_label_type": False, "edit_labels": False,
                            "label_types": [], "delete_rows": False, "execute_remotely": False},
                "concept": {"delete_any_concept": False},
            },
        }
    ),
    "GET /status": of_json({"version": "0.3.9", "google_analytics_enabled": False, "disable_outside_fetch": True}),
}  # fmt: skip
# -- Prefect, for both of its front ends: settings, and a variable by POST ---------------------------------------------

PREFECT: Mapping[str, CannedAnswer] = {
    "GET /ui-settings": of_json(
        {
            "api_url": "/api", "csrf_enabled": False, "auth": None, "flags": [], "default_ui": "v1",
            "available_uis": ["v1"], "v1_base_url": "", "v2_base_url": None,
        }
    ),
    "POST /api/variables/count": of_json(1),
    "POST /api/variables/filter": of_json(
        [
            {
                "id": "0191f2a4-0000-7000-8000-000000000001", "created": "2020-01-01T10:00:00Z",
                "updated": "2020-01-01T10:00:00Z", "name": "hill", "value": "Palatine", "tags": [],
            }
        ]
    ),
    "GET /api/health": of_json(True),
    "GET /api/admin/version": of_json("3.9.1"),
    "GET /api/admin/settings": of_json({"home": "/hills/of/rome", "profiles_path": "/hills/profiles.toml"}),
}  # fmt: skip

# -- NiceGUI: its page, as its server writes it, with a map ------------------------------------------------------------

_NICEGUI = "/_nicegui/3.18.0"
_NICEGUI_ELEMENTS = {
    "0": {"tag": "div", "children": [1, 2, 4, 5]},
    "1": {"tag": "h4", "text": "Made by an import map"},
    "2": {"tag": "q-expansion-item", "props": {"label": "More of it"}, "children": [3]},
    "3": {"tag": "p", "text": "Quasar shows what was folded."},
    "4": {
        "tag": "q-btn", "props": {"label": "Tiles"},
        "events": [
            {
                "type": "click", "specials": [], "modifiers": [], "keys": [], "args": None, "listener_id": "1",
                "js_handler": "() => runMethod(5, 'add_layer', [{type: 'tileLayer', "
                "args: ['/tiles/{z}/{x}/{y}.png', {attribution: 'Tiles by hand'}]}, 'tiles'])",
            }
        ],
    },
    "5": {
        "tag": "nicegui-leaflet", "style": {"height": "300px"},
        "props": {"center": [41.9, 12.5], "zoom": 3, "options": {}, "drawControl": False,
                  "resourcePath": f"{_NICEGUI}/resources", "hideDrawnItems": False, "additionalResources": []},
    },
}  # fmt: skip
_NICEGUI_IMPORTS = {
    "vue": f"{_NICEGUI}/static/vue.esm-browser.prod.js",
    "sass": f"{_NICEGUI}/static/sass.default.js",
    "immutable": f"{_NICEGUI}/static/immutable.es.js",
    "dompurify": f"{_NICEGUI}/static/dompurify.mjs",
    "nicegui-leaflet": f"{_NICEGUI}/esm/nicegui-leaflet/index.js",
    "nicegui-leaflet/": f"{_NICEGUI}/esm/nicegui-leaflet/",
}
NICEGUI: Mapping[str, CannedAnswer] = {
    "GET /": of_html(
        f"""<!doctype html><html><head><title>NiceGUI</title>
<link rel="stylesheet" href="{_NICEGUI}/static/quasar.unimportant.prod.css">
<link rel="stylesheet" href="{_NICEGUI}/static/nicegui.css">
<script type="importmap">{{"imports": {json.dumps(_NICEGUI_IMPORTS)}}}</script>
<link rel="modulepreload" href="{_NICEGUI}/static/vue.esm-browser.prod.js">
</head><body>
<script defer src="{_NICEGUI}/static/socket.io.min.js"></script>
<script type="module">import * as Vue from "vue"; globalThis.Vue = Vue;</script>
<script defer src="{_NICEGUI}/static/quasar.umd.prod.js"></script>
<script defer src="{_NICEGUI}/static/nicegui.js"></script>
<div id="app"></div><div id="popup" aria-hidden="true"></div>
<script type="module">
import DOMPurify from "dompurify";
Element.prototype.setHTML = function (html) {{ this.innerHTML = DOMPurify.sanitize(html); }};
const app = createApp(parseElements(String.raw`{json.dumps(_NICEGUI_ELEMENTS)}`), {{
  version: "3.18.0", prefix: "", query: {{client_id: "1", next_message_id: 0, implicit_handshake: true}},
  extraHeaders: {{}}, transports: ["polling"],
}});
app.use(Quasar, {{config: {{}}}});
import {{ default as leaflet }} from "{_NICEGUI}/components/leaflet/leaflet.js";
app.component("nicegui-leaflet", leaflet);
app.mount("#app");
</script></body></html>"""
    ),
} | {f"GET /tiles/3/{x}/{y}.png": tile(x, y) for x in range(8) for y in range(8)}

# -- ESPHome: its page; what it asks by WebSocket stays without an answer ----------------------------------------------

ESPHOME: Mapping[str, CannedAnswer] = {
    "GET /secret_keys": of_json(["wifi_ssid", "wifi_password"]),
    "GET /": of_html(
        """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Dashboard - ESPHome</title>
<link rel="stylesheet" href="/static/css/esphome-2.css"></head><body>
<esphome-main version="2026.4.0" docsLink="http://docs.test/"></esphome-main>
<script src="/static/js/esphome/index-zaYCB7m6.js" type="module"></script></body></html>"""
    ),
}

# -- Fava: a ledger ----------------------------------------------------------------------------------------------------

_FAVA_LEDGER = {
    "accounts": ["Assets:Cash", "Income:Work"], "account_details": {}, "base_url": "/rome/", "currencies": ["EUR"],
    "currency_names": {}, "errors": [], "fava_options": {
        "auto_reload": False, "collapse_pattern": [], "conversion_currencies": [], "currency_column": 61,
        "default_file": None, "default_page": "income_statement/", "import_config": None, "indent": 2,
        "insert_entry": [],
        "invert_gains_losses_colors": False, "invert_income_liabilities_equity": False, "locale": None,
        "show_accounts_with_zero_balance": True, "show_accounts_with_zero_transactions": True,
        "show_closed_accounts": False, "sidebar_show_queries": 5, "uptodate_indicator_grey_lookback_days": 60,
        "use_external_editor": False,
        "show_metadata_indicators": True, "import_dirs": [], "language": None, "upcoming_events": 7,
        "account_journal_include_children": True, "fiscal_year_end": {"month": 12, "day": 31},
    },
    "incognito": False, "have_excel": False, "links": [], "options": {
        "documents": [], "filename": "/rome.beancount", "include": ["/rome.beancount"], "operating_currency": ["EUR"],
        "title": "Accounts of Rome", "name_assets": "Assets", "name_liabilities": "Liabilities",
        "name_equity": "Equity", "name_income": "Income", "name_expenses": "Expenses",
    },
    "payees": [], "precisions": {"EUR": 2}, "tags": [], "years": ["2020"], "user_queries": [],
    "upcoming_events_count": 0, "extensions": [], "sidebar_links": [], "other_ledgers": [],
}  # fmt: skip
_FAVA_PAGE = of_html(
    f"""<!doctype html><html><head><meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/static/app.css"><title>Accounts of Rome</title>
<script type="module" src="/static/app.js"></script></head><body><article></article>
<script type="application/json" id="ledger-data">{json.dumps(_FAVA_LEDGER)}</script>
<script type="application/json" id="ledger-mtime">1</script>
<script type="application/json" id="translations">{{}}</script></body></html>"""
)
FAVA: Mapping[str, CannedAnswer] = {
    "GET /rome/options/": _FAVA_PAGE,
    "GET /rome/api/options": of_json(
        {"data": {"fava_options": {"indent": "2"}, "beancount_options": {"title": "Accounts of Rome"}}, "mtime": "1"}
    ),
    "GET /rome/api/source": of_json(
        {
            "data": {
                "file_path": "/rome.beancount",
                "sha256sum": "00",
                "source": "; Seven hills\n2020-01-01 open Assets:Cash\n",
            },
            "mtime": "1",
        }
    ),
    "GET /rome/api/changed": of_json({"data": False, "mtime": "1"}),
    "GET /rome/api/errors": of_json({"data": [], "mtime": "1"}),
}

# -- RapiDoc and Swagger UI: the description of an API -----------------------------------------------------------------

_OPENAPI = {
    "openapi": "3.0.3",
    "info": {"title": "Hills of Rome", "version": "1.0", "description": "Seven hills by their names."},
    "tags": [{"name": "hills"}],
    "paths": {
        "/hills/{name}": {
            "get": {
                "tags": ["hills"], "summary": "One hill", "operationId": "hill",
                "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "The hill with its height in metres"}},
            }
        }
    },
}  # fmt: skip
RAPIDOC: Mapping[str, CannedAnswer] = {
    "GET /": of_html(
        """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>RapiDoc</title>
<script type="module" src="/static/js/rapidoc-min.js"></script></head><body>
<rapi-doc spec-url="/openapi.json" render-style="view" show-header="false" load-fonts="false"></rapi-doc>
</body></html>"""
    ),
    "GET /openapi.json": of_json(_OPENAPI),
}
SWAGGER: Mapping[str, CannedAnswer] = {
    "GET /swagger-initializer.js": CannedAnswer(
        b"""window.onload = () => {
  window.ui = SwaggerUIBundle({
    url: "/openapi.json", dom_id: "#swagger-ui", deepLinking: true,
    presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset], layout: "StandaloneLayout",
  });
};
""",
        "text/javascript",
    ),
    "GET /openapi.json": of_json(_OPENAPI),
}
# -- TensorBoard: no data ----------------------------------------------------------------------------------------------

TENSORBOARD: Mapping[str, CannedAnswer] = {
    "GET /data/environment": of_json(
        {"version": "2.21.0", "data_location": "/hills", "window_title": "", "experiment_name": ""}
    ),
    "GET /data/plugins_listing": of_json({}),
    "GET /data/runs": of_json([]),
    "GET /experiment/defaultExperimentId/data/runs": of_json([]),
    "GET /experiments": of_json([]),
}


# -- the app of our own: answers that only the body tells apart, and tiles ---------------------------------------------

HILLS: Mapping[str, CannedAnswer] = {
    'POST /api/search {"q":"alpha"}': of_json({"text": "the first letter"}),
    'POST /api/search {"q":"beta"}': of_json({"text": "the second letter"}),
    "POST /api/search q=gamma&n=1": of_json({"text": "the third letter"}),
} | {f"GET /tiles/2/{x}/{y}.png": tile(x, y) for x in range(3) for y in range(3)}
