// What an application does with the Vercel AI SDK, unchanged; the results as JSON.
// OPENAI_BASE_URL and OPENAI_API_KEY are read by it, of the others it is told where.

import { load, run } from "./cases.mjs";

const { embed, generateText, isStepCount, Output, streamText, tool } = load("ai");
const { createAnthropic } = load("@ai-sdk/anthropic");
const { createGoogleGenerativeAI } = load("@ai-sdk/google");
const { createOpenAI } = load("@ai-sdk/openai");
const { z } = load("zod");

// Its own warnings go to the console, where the results are.
globalThis.AI_SDK_LOG_WARNINGS = false;

const env = process.env;
const openai = createOpenAI();
const anthropic = createAnthropic({ baseURL: `${env.ANTHROPIC_BASE_URL}/v1` });
const google = createGoogleGenerativeAI({ baseURL: `${env.GEMINI_BASE_URL}/v1beta`, apiKey: env.GEMINI_API_KEY });
const makers = {
  openai: (model) => openai.chat(model),
  responses: (model) => openai.responses(model),
  anthropic: (model) => anthropic(model),
  google: (model) => google(model),
};

const prompt = "grüß dich";
const weather = { description: "The weather in a city", inputSchema: z.object({ city: z.string() }) };
const tools = { weather: tool(weather) };
const output = Output.object({ schema: z.object({ answer: z.string() }) });

function takeCall([{ toolName, input }], result) {
  result.tool = { name: toolName, input };
}

// What a stream meets is a part of it, not an exception.
async function read(stream, result) {
  for await (const part of stream.fullStream) {
    if (part.type === "text-delta") result.text += part.text;
    if (part.type === "error") throw part.error;
  }
}

const asks = {
  async text(model, result) {
    result.text = (await generateText({ model, prompt })).text;
  },

  async stream(model, result) {
    await read(streamText({ model, prompt }), result);
  },

  async tools(model, result) {
    takeCall((await generateText({ model, prompt, tools })).toolCalls, result);
  },

  async tools_stream(model, result) {
    const stream = streamText({ model, prompt, tools });
    await read(stream, result);
    takeCall(await stream.toolCalls, result);
  },

  async object(model, result) {
    result.object = (await generateText({ model, prompt, output })).output;
  },

  async object_stream(model, result) {
    const stream = streamText({ model, prompt, output });
    for await (const partial of stream.partialOutputStream) result.object = partial;
    result.object = await stream.output;
  },

  // The SDK calls the function itself and asks again with what it gave.
  async agent(model, result) {
    const execute = async ({ city }) => {
      result.called_with = city;
      return "rain";
    };
    const asked = { model, prompt, tools: { weather: tool({ ...weather, execute }) }, stopWhen: isStepCount(5) };
    result.text = (await generateText(asked)).text;
  },
};

const operations = {
  async openai_embed(model, result) {
    result.embeddings = [(await embed({ model: openai.embedding(model), value: prompt })).embedding];
  },
};
for (const [maker, make] of Object.entries(makers)) {
  for (const [ask, act] of Object.entries(asks)) {
    operations[`${maker}_${ask}`] = (model, result) => act(make(model), result);
  }
}

await run(operations, (error) => ({ status: error?.statusCode ?? null }));
