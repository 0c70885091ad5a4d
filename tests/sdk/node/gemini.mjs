// What an application does with Google's own Node SDK, unchanged; the results as JSON.
// GEMINI_BASE_URL says where, GEMINI_API_KEY who asks.

import { load, run } from "./cases.mjs";

const { GoogleGenAI, Type } = load("@google/genai");

const client = new GoogleGenAI({
  apiKey: process.env.GEMINI_API_KEY,
  httpOptions: { baseUrl: process.env.GEMINI_BASE_URL },
});
const contents = "grüß dich";
const object = (name) => ({ type: Type.OBJECT, properties: { [name]: { type: Type.STRING } }, required: [name] });
const weather = { name: "weather", description: "The weather in a city", parameters: object("city") };
const tools = [{ functionDeclarations: [weather] }];

function take(response, result) {
  result.id = response.responseId;
  for (const part of response.candidates?.[0]?.content?.parts ?? []) result.text += part.text ?? "";
  result.finish = response.candidates?.[0]?.finishReason ?? result.finish;
  for (const { name, args } of response.functionCalls ?? []) result.tool = { name, input: args };
}

const operations = {
  async whole(model, result) {
    take(await client.models.generateContent({ model, contents }), result);
  },

  async stream(model, result) {
    for await (const chunk of await client.models.generateContentStream({ model, contents })) take(chunk, result);
  },

  async chat(model, result) {
    const chat = client.chats.create({ model });
    for await (const chunk of await chat.sendMessageStream({ message: contents })) take(chunk, result);
  },

  async tools(model, result) {
    take(await client.models.generateContent({ model, contents, config: { tools } }), result);
  },

  async tools_stream(model, result) {
    const asked = { model, contents, config: { tools } };
    for await (const chunk of await client.models.generateContentStream(asked)) take(chunk, result);
  },

  async parse(model, result) {
    const config = { responseMimeType: "application/json", responseSchema: object("answer") };
    const response = await client.models.generateContent({ model, contents, config });
    take(response, result);
    result.object = JSON.parse(response.text);
  },

  async count(model, result) {
    result.count = (await client.models.countTokens({ model, contents })).totalTokens;
  },

  async embed(model, result) {
    const { embeddings } = await client.models.embedContent({ model, contents });
    result.embeddings = embeddings.map((embedding) => embedding.values);
  },

  async models(model, result) {
    result.models = [];
    for await (const listed of await client.models.list()) result.models.push(listed.name);
    result.one = (await client.models.get({ model })).name;
  },
};

await run(operations, (error) => {
  // The error object of the answer is the message.
  const said = String(error?.message ?? "").replace(/^got status: [A-Z_]+\. /, "");
  try {
    const { error: details } = JSON.parse(said);
    return { name: details.status, code: details.details?.[0]?.reason ?? null, message: details.message };
  } catch {
    return { class: error?.name ?? "unknown" };
  }
});
