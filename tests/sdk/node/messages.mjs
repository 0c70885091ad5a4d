// What an application does with the official Anthropic SDK for Node, unchanged; the results as JSON.
// The SDK takes ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY from the environment.

import { load, run } from "./cases.mjs";

const { default: Anthropic } = load("@anthropic-ai/sdk");
const { zodOutputFormat } = load("@anthropic-ai/sdk/helpers/zod");
const { z } = load("zod");

const client = new Anthropic();
const messages = [{ role: "user", content: "grüß dich" }];
const ask = (model) => ({ model, messages, max_tokens: 99 });
const weather = {
  name: "weather",
  description: "The weather in a city",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const output_config = { format: zodOutputFormat(z.object({ answer: z.string() })) };

function takeCall(message, result) {
  const { name, input } = message.content.find((block) => block.type === "tool_use");
  Object.assign(result, { id: message.id, finish: message.stop_reason, tool: { name, input } });
}

function takeObject(message, result) {
  Object.assign(result, { id: message.id, finish: message.stop_reason, object: message.parsed_output });
}

const operations = {
  async whole(model, result) {
    const message = await client.messages.create(ask(model));
    const text = message.content.map((block) => block.text).join("");
    Object.assign(result, { id: message.id, text, finish: message.stop_reason });
  },

  async stream(model, result) {
    for await (const event of await client.messages.create({ ...ask(model), stream: true })) {
      if (event.type === "message_start") result.id = event.message.id;
      if (event.type === "content_block_delta") result.text += event.delta.text;
      if (event.type === "message_delta") result.finish = event.delta.stop_reason;
    }
  },

  async helper(model, result) {
    const events = client.messages.stream(ask(model));
    events.on("text", (text) => (result.text += text));
    const message = await events.finalMessage();
    Object.assign(result, { id: message.id, text: message.content[0].text, finish: message.stop_reason });
  },

  async tools(model, result) {
    takeCall(await client.messages.stream({ ...ask(model), tools: [weather] }).finalMessage(), result);
  },

  async tools_whole(model, result) {
    takeCall(await client.messages.create({ ...ask(model), tools: [weather] }), result);
  },

  async parse(model, result) {
    takeObject(await client.messages.parse({ ...ask(model), output_config }), result);
  },

  async parse_stream(model, result) {
    takeObject(await client.messages.stream({ ...ask(model), output_config }).finalMessage(), result);
  },

  async count(model, result) {
    result.count = (await client.messages.countTokens({ model, messages })).input_tokens;
  },

  async models(_, result) {
    result.models = [];
    for await (const listed of client.models.list()) result.models.push(listed.id);
  },
};

await run(operations, (error) => ({
  kind: error?.type ?? error?.error?.error?.type ?? null,
  message: `${error} ${JSON.stringify(error?.error ?? null)}`,
}));
