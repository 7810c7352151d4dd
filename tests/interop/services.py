"""A server for `services.sh`: the service of mem0.ai and Azure AI Search, of which it keeps the requests, and a Mem0 of one's own over the
real package; the model and the embeddings that this wants are made up. And the providers of Microsoft Agent Framework, which ask the
first two, and the server for Redis that the tests have.

    services.py serve FOLDER                     prints its port; the requests go to FOLDER/requests.jsonl
    services.py mem0 URL SEARCH STORE INPUT ANSWER
    services.py azure URL index|meaning|base|filtered|made NAME INPUT
    services.py redis PORT words|vectors SCOPE INPUT ANSWER
"""

import asyncio
import hashlib
import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

os.environ["MEM0_TELEMETRY"] = "false"
DIMENSIONS = 256


def embedding(text):
    """Words in common make texts near."""
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % DIMENSIONS] += 1.0
    return vector if any(vector) else [1.0] * DIMENSIONS


def completion(messages):
    """The model, which infers one fact of whatever was said."""
    fact = "The user drinks oolong." if "oolong" in messages[-1]["content"] else "The user said something."
    content = json.dumps({"memory": [{"id": "0", "text": fact, "attributed_to": "user"}]})
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "made-up",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = None
    memory = None
    lock = threading.Lock()

    def do_GET(self):
        if self.path.startswith("/v1/ping/"):
            return self.reply({"org_id": "o", "project_id": "p", "user_email": "alice@example.com"})
        self.keep(self.path, "api-key", None)
        found = self.definition(unquote(self.path.split("?")[0]))
        self.reply(found or {"error": {"code": "", "message": "there is no such thing"}}, 200 if found else 404)

    def definition(self, path):
        """What is there in Azure AI Search: an index with vectors by the service, one without, and a knowledge base. The source
        of the index with vectors is there, and that of the other is not."""
        if path == "/indexes('vectors')":
            profiles = [{"name": "p", "algorithm": "a", "vectorizer": "v"}]
            vector = {"name": "vector", "type": "Collection(Edm.Single)", "dimensions": 8, "vectorSearchProfile": "p"}
            return {"name": "vectors", "fields": [{"name": "id", "type": "Edm.String", "key": True}, vector],
                    "vectorSearch": {"profiles": profiles}}
        if path == "/indexes('words')":
            return {"name": "words", "fields": [{"name": "id", "type": "Edm.String", "key": True}]}
        if path == "/knowledgebases('base')":
            return {"name": "base", "knowledgeSources": [{"name": "handbook"}]}
        if path == "/knowledgesources('handbook')":
            return {"name": "handbook", "kind": "searchIndex", "searchIndexParameters": {"searchIndexName": "words"}}
        if path == "/knowledgesources('vectors-source')":
            return {"name": "vectors-source", "kind": "searchIndex", "searchIndexParameters": {"searchIndexName": "vectors"}}
        if path == "/knowledgesources('words-source')":
            return None
        raise ValueError(path)

    def do_PUT(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.keep(f"PUT {self.path} {self.headers['prefer']}", "api-key", body)
        self.reply(body)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = unquote(self.path.split("?")[0])
        with self.lock:
            self.reply(self.answer(path, body), 201 if path == "/knowledgesources" else 200)

    def answer(self, path, body):
        if path.startswith("/v3/memories/"):
            self.keep(path, "authorization", body)
        if "/docs/search.post.search" in path:
            self.keep(self.path, "api-key", body)
            return {"value": [{"@search.score": 1.0, "id": "7", "content": "Opens at nine."}, {"@search.score": 0.5, "id": "8", "chunk": "Closes at five."}]}
        if path == "/knowledgesources":
            self.keep(self.path, "api-key", body)
            return body
        if path.endswith("/retrieve"):
            self.keep(self.path, "api-key", body)
            return {"response": [{"role": "assistant", "content": [{"type": "text", "text": "Opens at nine."}]}],
                    "references": [{"type": "searchIndex", "id": "0", "activitySource": 0, "docKey": "hours"}], "activity": []}
        if path == "/v3/memories/search/":
            name, value = next((name, body["filters"][name]) for name in ("user_id", "agent_id", "app_id") if name in body["filters"])
            own = {"id": f"{name}-1", "memory": f"Of {value}.", name: value, "score": 0.9}
            both = {"id": "both", "memory": "Of both.", "score": 0.8}
            return {"results": [own, both]}
        if path == "/v3/memories/add/":
            return {"event_id": "e", "status": "PENDING", "message": "queued"}
        if path == "/memories":
            ids = {key: body[key] for key in ("user_id", "agent_id", "run_id", "infer") if body.get(key) is not None}
            return self.memory.add(body["messages"], **ids)
        if path == "/search":
            more = {key: body[key] for key in ("top_k",) if body.get(key) is not None}
            return self.memory.search(body["query"], filters=body["filters"], **more)
        raise ValueError(path)

    def keep(self, path, key, body):
        with open(os.path.join(self.folder, "requests.jsonl"), "a") as out:
            print(json.dumps([unquote(path), self.headers[key], body], sort_keys=True), file=out)

    def reply(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Models(Handler):
    """What the package asks while it answers: a server of its own, so that neither waits for the other."""

    lock = threading.Lock()

    def answer(self, path, body):
        if path == "/embeddings":
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            data = [{"object": "embedding", "index": at, "embedding": embedding(text)} for at, text in enumerate(texts)]
            return {"object": "list", "model": "made-up", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        if path == "/chat/completions":
            return completion(body["messages"])
        raise ValueError(path)


def serve(folder):
    from mem0 import Memory

    models = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=models.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{models.server_port}"
    model = {"api_key": "none", "openai_base_url": url, "model": "made-up"}
    Handler.folder = folder
    Handler.memory = Memory.from_config({
        "vector_store": {"provider": "qdrant", "config": {
            "path": os.path.join(folder, "vectors"), "on_disk": True, "embedding_model_dims": DIMENSIONS}},
        "embedder": {"provider": "openai", "config": {**model, "embedding_dims": DIMENSIONS}},
        "llm": {"provider": "openai", "config": model},
        "history_db_path": os.path.join(folder, "history.db"),
    })
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


async def mem0(url, search, store, said, answered):
    from agent_framework import AgentResponse, AgentSession, Message, SessionContext
    from agent_framework_mem0 import Mem0ContextProvider
    from mem0 import AsyncMemoryClient

    def ids(text, prefix):
        return {f"{prefix}{name}_id": value for name, _, value in (part.partition("=") for part in text.split(",") if part)}

    client = AsyncMemoryClient(api_key="m0-key", host=url)
    provider = Mem0ContextProvider(mem0_client=client, **ids(search, "search_"), **ids(store, ""))
    context = SessionContext(input_messages=[Message("user", [said])])
    session = AgentSession()
    await provider.before_run(agent=None, session=session, context=context, state={})
    for message in context.context_messages.get("mem0", []):
        print(message.text)
    context._response = AgentResponse(messages=[Message("assistant", [answered])])
    await provider.after_run(agent=None, session=session, context=context, state={})


async def azure(url, searched, name, said):
    from agent_framework import AgentSession, Message, SessionContext
    from agent_framework_azure_ai_search import AzureAISearchContextProvider
    from azure.search.documents.knowledgebases.models import SearchIndexKnowledgeSourceParams

    model = {"azure_openai_resource_url": "https://o.openai.azure.com", "model": "gpt-4.1-mini", "azure_openai_api_key": "o-key"}
    filtered = SearchIndexKnowledgeSourceParams(knowledge_source_name="handbook", filter_add_on="tenant eq 'north'")
    more = {
        "index": {"index_name": name},
        "meaning": {"index_name": name, "semantic_configuration_name": "default"},
        "base": {"knowledge_base_name": name, "mode": "agentic"},
        "filtered": {"knowledge_base_name": name, "mode": "agentic", "knowledge_source_params": [filtered]},
        "made": {"index_name": name, "mode": "agentic", **model},
    }[searched]
    async with AzureAISearchContextProvider(endpoint=url, api_key="a-key", **more) as provider:
        context = SessionContext(input_messages=[Message("user", [said])])
        await provider.before_run(agent=None, session=AgentSession(), context=context, state={})
        for message in context.context_messages.get("azure_ai_search", []):
            print(message.text)


async def redis(port, searched, scope, said, answered):
    from agent_framework import AgentResponse, AgentSession, Message, SessionContext
    from agent_framework_redis import RedisContextProvider
    from redisvl.utils.vectorize import CustomVectorizer

    def letters(text, **_):
        return [text.count(letter) + 0.5 for letter in "kot"]

    async def one(text, **_):
        return letters(text)

    async def many(texts, **_):
        return [letters(text) for text in texts]

    more = {f"{name}_id": value for name, _, value in (part.partition("=") for part in scope.split(","))}
    if searched == "vectors":
        vectorizer = CustomVectorizer(embed=letters, aembed=one, embed_many=lambda texts, **_: list(map(letters, texts)), aembed_many=many)
        more.update(redis_vectorizer=vectorizer, vector_field_name="vector", index_name="vectors", prefix="vectors")
    provider = RedisContextProvider(redis_url=f"redis://127.0.0.1:{port}", **more)
    context = SessionContext(session_id="s-1", input_messages=[Message("user", [said])])
    await provider.before_run(agent=None, session=AgentSession(), context=context, state={})
    for message in context.context_messages.get("redis", []):
        print(message.text)
    context._response = AgentResponse(messages=[Message("assistant", [answered])])
    await provider.after_run(agent=None, session=AgentSession(), context=context, state={})


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        asyncio.run({"mem0": mem0, "azure": azure, "redis": redis}[sys.argv[1]](*sys.argv[2:]))
