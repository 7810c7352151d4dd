// A service of the Chat Completions API on loopback. A test sets its answers; it keeps the requests.

import http from "node:http";

/**
 * Starts the service. Its `answer` takes the body of a request and gives `{ text }` or `{ tool, arguments }`; `tokens` is the size of the
 * request that the service reports.
 */
export async function startService() {
  const service = { requests: [], answer: () => ({ text: "Done." }) };
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (!request.url.startsWith("/v1/chat/completions")) {
      response.writeHead(404).end();
      return;
    }
    const parsed = JSON.parse(body);
    service.requests.push(parsed);
    stream(response, parsed, service.answer(parsed), service.requests.length);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  service.url = `http://127.0.0.1:${server.address().port}/v1`;
  service.stop = () => server.close();
  return service;
}

/** Whether Pi asks for a summary. */
export function isSummary(request) {
  return textOf(request.messages[0]).startsWith("You are a context summarization assistant");
}

/** The text of a message. */
export function textOf({ content }) {
  return typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");
}

function stream(response, request, { text, tool, arguments: args, tokens = 100 }, number) {
  const base = { id: `chatcmpl-${number}`, object: "chat.completion.chunk", created: 0, model: request.model };
  const calls = [{ index: 0, id: `call_${number}`, type: "function", function: { name: tool, arguments: JSON.stringify(args) } }];
  const delta = tool ? { role: "assistant", tool_calls: calls } : { role: "assistant", content: text };
  const usage = { prompt_tokens: tokens, completion_tokens: 1, total_tokens: tokens + 1 };
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (data) => response.write(`data: ${JSON.stringify({ ...base, ...data })}\n\n`);
  send({ choices: [{ index: 0, delta, finish_reason: null }] });
  send({ choices: [{ index: 0, delta: {}, finish_reason: tool ? "tool_calls" : "stop" }] });
  send({ choices: [], usage });
  response.end("data: [DONE]\n\n");
}
