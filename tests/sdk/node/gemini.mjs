// What an application does with Google's own Node SDK, unchanged: one scenario, its result as JSON.
// GEMINI_BASE_URL says where, GEMINI_API_KEY who asks; MODEL names the model.

import { createRequire } from "node:module";

// The SDK is installed beside the other test tools, not beside this file.
const { GoogleGenAI } = createRequire(`${process.env.SLUICE_TEST_TOOLS}/node/package.json`)("@google/genai");

const contents = "grüß dich";
const model = process.env.MODEL;

function take(response, result) {
  result.id = response.responseId;
  result.text += response.text ?? "";
  result.finish = response.candidates?.[0]?.finishReason ?? result.finish;
}

const scenarios = {
  async whole(client, result) {
    take(await client.models.generateContent({ model, contents }), result);
  },

  // What was received before an error stays in the result.
  async stream(client, result) {
    for await (const chunk of await client.models.generateContentStream({ model, contents })) take(chunk, result);
  },

  async count(client, result) {
    result.tokens = (await client.models.countTokens({ model, contents })).totalTokens;
  },

  async embed(client, result) {
    const { embeddings } = await client.models.embedContent({ model, contents });
    result.embeddings = embeddings.map((embedding) => embedding.values);
  },

  async models(client, result) {
    result.models = [];
    for await (const listed of await client.models.list()) result.models.push(listed.name);
    result.one = (await client.models.get({ model })).name;
  },
};

const result = { text: "", finish: null, error: null };
try {
  const client = new GoogleGenAI({
    apiKey: process.env.GEMINI_API_KEY,
    httpOptions: { baseUrl: process.env.GEMINI_BASE_URL },
  });
  await scenarios[process.argv[2]](client, result);
} catch (error) {
  result.error = { class: error?.name ?? "unknown", status: error?.status ?? null, message: String(error) };
  // The error object of the answer is the message.
  const said = String(error?.message ?? "").replace(/^got status: [A-Z_]+\. /, "");
  try {
    const { error: details } = JSON.parse(said);
    Object.assign(result.error, {
      name: details.status,
      code: details.details?.[0]?.reason ?? null,
      message: details.message,
    });
  } catch {}
}
console.log(JSON.stringify(result));
