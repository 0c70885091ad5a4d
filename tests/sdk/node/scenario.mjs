// What an application does with chat completions of the official Node SDK, unchanged; the results as JSON.
// The SDK takes OPENAI_BASE_URL and OPENAI_API_KEY from the environment.

import { load, run } from "./cases.mjs";

const { default: OpenAI } = load("openai");
const { zodFunction, zodResponseFormat } = load("openai/helpers/zod");
const { z } = load("zod");

const client = new OpenAI();
const messages = [{ role: "user", content: "grüß dich" }];
const tools = [zodFunction({ name: "weather", parameters: z.object({ city: z.string() }) })];
const response_format = zodResponseFormat(z.object({ answer: z.string() }), "answer");

function takeCall(answer, result) {
  const { finish_reason, message } = answer.choices[0];
  const { name, arguments: sent } = message.tool_calls[0].function;
  Object.assign(result, { id: answer.id, finish: finish_reason, tool: { name, input: JSON.parse(sent) } });
}

function takeObject(answer, result) {
  const { finish_reason, message } = answer.choices[0];
  Object.assign(result, { id: answer.id, finish: finish_reason, object: message.parsed });
}

const operations = {
  async whole(model, result) {
    const answer = await client.chat.completions.create({ model, messages });
    const choice = answer.choices[0];
    Object.assign(result, { id: answer.id, text: choice.message.content, finish: choice.finish_reason });
  },

  async stream(model, result) {
    for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
      result.id = chunk.id;
      for (const choice of chunk.choices) {
        result.text += choice.delta.content ?? "";
        result.finish = choice.finish_reason ?? result.finish;
      }
    }
  },

  async helper(model, result) {
    const events = client.chat.completions.stream({ model, messages });
    events.on("content", (delta) => (result.text += delta));
    const answer = await events.finalChatCompletion();
    Object.assign(result, { id: answer.id, finish: answer.choices[0].finish_reason });
  },

  async tools(model, result) {
    takeCall(await client.chat.completions.create({ model, messages, tools }), result);
  },

  async tools_stream(model, result) {
    takeCall(await client.chat.completions.stream({ model, messages, tools }).finalChatCompletion(), result);
  },

  async parse(model, result) {
    takeObject(await client.chat.completions.parse({ model, messages, response_format }), result);
  },

  async parse_stream(model, result) {
    const events = client.chat.completions.stream({ model, messages, response_format });
    takeObject(await events.finalChatCompletion(), result);
  },

  async models(_, result) {
    result.models = [];
    for await (const listed of client.models.list()) result.models.push(listed.id);
  },
};

await run(operations, (error) => ({ code: error?.code ?? null }));
