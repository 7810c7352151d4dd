// A service of the Messages API that answers every request at once, and keeps them.

import http from "node:http";

/** Starts it, and gives its address, the bodies of its requests, and a way to end it. */
export async function startService(summary) {
  const requests = [];
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (!request.url.startsWith("/v1/messages")) {
      response.writeHead(404).end();
      return;
    }
    if (request.url.includes("count_tokens")) {
      response.writeHead(200, { "content-type": "application/json" }).end('{"input_tokens":100}');
      return;
    }
    requests.push(body);
    answer(JSON.parse(body), body.includes("<summary>") ? `<summary>${summary}</summary>` : "Done.", requests.length, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, requests, stop: () => server.close() };
}

function answer(request, text, number, response) {
  const usage = { input_tokens: 10, output_tokens: 1 };
  const message = { id: `msg_${number}`, type: "message", role: "assistant", model: request.model, content: [] };
  Object.assign(message, { stop_reason: null, stop_sequence: null, usage });
  if (!request.stream) {
    const whole = { ...message, content: [{ type: "text", text }], stop_reason: "end_turn" };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(whole));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (type, data) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  send("message_start", { message });
  send("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
  send("content_block_delta", { index: 0, delta: { type: "text_delta", text } });
  send("content_block_stop", { index: 0 });
  send("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 5 } });
  send("message_stop", {});
  response.end();
}
