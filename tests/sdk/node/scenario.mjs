// What an application does with the official Node SDK, unchanged: one scenario, its result as JSON.
// The SDK takes OPENAI_BASE_URL and OPENAI_API_KEY from the environment; MODEL names the model.

import { createRequire } from "node:module";

// The SDK is installed beside the other test tools, not beside this file.
const { default: OpenAI } = createRequire(`${process.env.SLUICE_TEST_TOOLS}/node/package.json`)("openai");

const messages = [{ role: "user", content: "grüß dich" }];
const model = process.env.MODEL;

const scenarios = {
  async whole(client, result) {
    const answer = await client.chat.completions.create({ model, messages });
    const choice = answer.choices[0];
    Object.assign(result, { id: answer.id, text: choice.message.content, finish: choice.finish_reason });
  },

  // What was received before an error stays in the result.
  async stream(client, result) {
    for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
      result.id = chunk.id;
      for (const choice of chunk.choices) {
        result.text += choice.delta.content ?? "";
        result.finish = choice.finish_reason ?? result.finish;
      }
    }
  },

  async models(client, result) {
    result.models = [];
    for await (const listed of client.models.list()) result.models.push(listed.id);
  },
};

const result = { text: "", finish: null, error: null };
try {
  await scenarios[process.argv[2]](new OpenAI(), result);
} catch (error) {
  result.error = {
    class: error?.constructor?.name ?? "unknown",
    status: error?.status ?? null,
    code: error?.code ?? null,
    message: String(error),
  };
}
console.log(JSON.stringify(result));
