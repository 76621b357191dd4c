"""The routes of mem0's open-source server over the mem0 library, for the Python that has `mem0ai`.

The server itself is not on PyPI: this is as thin as can be, and what happens behind each route is mem0's own doing.
Arguments: a folder, the address of an OpenAI-compatible embeddings endpoint, an API key. It prints its own address.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

folder, embeddings, api_key = sys.argv[1:]
os.environ["MEM0_DIR"], os.environ["MEM0_TELEMETRY"] = folder, "False"

from mem0 import Memory  # noqa: E402  # reads the environment when it is imported

memory = Memory.from_config(
    {
        "vector_store": {
            "provider": "qdrant",
            "config": {"path": f"{folder}/qdrant", "on_disk": True, "embedding_model_dims": 256},
        },
        "embedder": {
            "provider": "openai",
            "config": {"api_key": "none", "openai_base_url": embeddings, "model": "words", "embedding_dims": 256},
        },
        "llm": {"provider": "openai", "config": {"api_key": "none", "openai_base_url": embeddings}},
        "history_db_path": f"{folder}/history.db",
    }
)
one_at_a_time = threading.Lock()  # Qdrant in a folder is for one thread


def carried_out(method: str, path: str, query: dict, sent: dict) -> object:
    root, _, record_id = path.strip("/").partition("/")
    match method, root, unquote(record_id):
        case "POST", "memories", "":
            return memory.add(sent.pop("messages"), **sent)
        case "POST", "search", "":
            return memory.search(sent.pop("query"), **sent)
        case "GET", "memories", "":
            return memory.get_all(filters={"user_id": query["user_id"]}, top_k=int(query.get("top_k", "100")))
        case "DELETE", "memories", "":
            return memory.delete_all(user_id=query["user_id"])
        case "GET", "memories", record_id:
            return memory.get(record_id)
        case "PUT", "memories", record_id:
            return memory.update(record_id, **sent)
        case "DELETE", "memories", record_id:
            return memory.delete(record_id)
    raise ValueError("There is no such route.")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        parts = urlsplit(self.path)
        if self.headers.get("x-api-key") != api_key:
            status, value = 401, {"detail": "Invalid API key."}
        else:
            try:
                with one_at_a_time:
                    query, sent = dict(parse_qsl(parts.query)), json.loads(body or b"{}")
                    status, value = 200, carried_out(self.command, parts.path, query, sent)
            except ValueError as error:
                status, value = 400, {"detail": str(error)}
            except Exception as error:  # a server's last resort
                status, value = 500, {"detail": repr(error)}
        data = json.dumps(value, default=str).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815  # the names that the library looks for

    def log_message(self, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()  # ends with its parent
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
