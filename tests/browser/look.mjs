// Opens a page in a real browser, once for each view (theme and width), and prints as JSON what is to be judged:
// what it shows, what it said on the console, whom it called, what axe finds, what is wider than the window.
//
//   node look.mjs '{"url": …, "chromium": …, "shots": …, "views": [{"theme": "dark", "width": 400}]}'
import { launch, listen, see } from "./seen.mjs";

const plan = JSON.parse(process.argv[2]);
const browser = await launch(plan.chromium);

/** In the page: the root of an XML document, or why it is none. */
async function readXml(path) {
  const answer = await fetch(path);
  const kind = answer.headers.get("content-type").split(";")[0];
  const root = new DOMParser().parseFromString(await answer.text(), kind === "image/svg+xml" ? kind : "application/xml");
  return `${path} ${answer.status} ${root.querySelector("parsererror")?.textContent ?? root.documentElement.nodeName}`;
}

async function look({ theme, width }) {
  const context = await browser.newContext({
    colorScheme: theme,
    viewport: { width, height: 900 },
    reducedMotion: "reduce",
    httpCredentials: plan.token ? { username: "me", password: plan.token } : undefined,
  });
  const page = await context.newPage();
  const { said, requests } = listen(page);
  await page.goto(plan.url, { waitUntil: "load" });
  const seen = {
    theme,
    width,
    ...(await see(page, `${plan.shots}-${theme}-${width}.png`)),
    // What is cut when the page is closed is no fault of the page.
    said: [...said],
    requests: [...requests],
    documents: await Promise.all(plan.documents.map((path) => page.evaluate(readXml, path))),
  };
  await context.close();
  return seen;
}

try {
  const views = [];
  for (const view of plan.views) views.push(await look(view));
  console.log(JSON.stringify({ views }));
} finally {
  await browser.close();
}
