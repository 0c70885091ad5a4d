// What an application does with the official Anthropic SDK for Node, unchanged: one scenario, its result as JSON.
// The SDK takes ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY from the environment; MODEL names the model.

import { createRequire } from "node:module";

// The SDK is installed beside the other test tools, not beside this file.
const { default: Anthropic } = createRequire(`${process.env.SLUICE_TEST_TOOLS}/node/package.json`)("@anthropic-ai/sdk");

const ask = { model: process.env.MODEL, messages: [{ role: "user", content: "grüß dich" }] };
const weather = {
  name: "weather",
  description: "The weather in a city",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

const scenarios = {
  async whole(client, result) {
    const message = await client.messages.create({ ...ask, max_tokens: 99 });
    const text = message.content.map((block) => block.text).join("");
    Object.assign(result, { id: message.id, text, finish: message.stop_reason });
  },

  // What was received before an error stays in the result.
  async stream(client, result) {
    for await (const event of await client.messages.create({ ...ask, max_tokens: 99, stream: true })) {
      if (event.type === "message_start") result.id = event.message.id;
      if (event.type === "content_block_delta") result.text += event.delta.text;
      if (event.type === "message_delta") result.finish = event.delta.stop_reason;
    }
  },

  async helper(client, result) {
    const events = client.messages.stream({ ...ask, max_tokens: 99 });
    events.on("text", (text) => (result.text += text));
    const message = await events.finalMessage();
    Object.assign(result, { id: message.id, text: message.content[0].text, finish: message.stop_reason });
  },

  async tools(client, result) {
    const message = await client.messages.stream({ ...ask, max_tokens: 99, tools: [weather] }).finalMessage();
    const { name, input } = message.content[0];
    Object.assign(result, { finish: message.stop_reason, tool: { name, input } });
  },

  async count(client, result) {
    result.count = (await client.messages.countTokens(ask)).input_tokens;
  },

  async models(client, result) {
    result.models = [];
    for await (const listed of client.models.list()) result.models.push(listed.id);
  },
};

const result = { text: "", finish: null, error: null };
try {
  await scenarios[process.argv[2]](new Anthropic(), result);
} catch (error) {
  result.error = {
    class: error?.constructor?.name ?? "unknown",
    status: error?.status ?? null,
    kind: error?.type ?? error?.error?.error?.type ?? null,
    message: `${error} ${JSON.stringify(error?.error ?? null)}`,
  };
}
console.log(JSON.stringify(result));
