// What an application with the official Node SDK, unchanged, sees of what a stream used: without asking for it and with.
// The SDK takes OPENAI_BASE_URL and OPENAI_API_KEY from the environment.

import { createRequire } from "node:module";

// The SDK is installed beside the other test tools, not beside this file.
const { default: OpenAI } = createRequire(`${process.env.SLUICE_TEST_TOOLS}/node/package.json`)("openai");

const messages = [{ role: "user", content: "grüß dich" }];

async function stream(client, options) {
  const result = { text: "", without_choices: 0, usage: null };
  for await (const chunk of await client.chat.completions.create({ model: "m", messages, stream: true, ...options })) {
    // Applications that never ask for usage take the first choice without a look.
    result.without_choices += chunk.choices.length === 0 ? 1 : 0;
    for (const choice of chunk.choices) result.text += choice.delta.content ?? "";
    if (chunk.usage) result.usage = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens];
  }
  return result;
}

const client = new OpenAI();
const plain = await stream(client, {});
const asking = await stream(client, { stream_options: { include_usage: true } });
console.log(JSON.stringify({ plain, asking }));
