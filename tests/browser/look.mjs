// Opens a page in a real browser, once for each view (theme and width), and prints as JSON what is to be judged:
// what it shows, what it said on the console, whom it called, what axe finds, what is wider than the window.
//
//   node look.mjs '{"url": …, "chromium": …, "shots": …, "views": [{"theme": "dark", "width": 400}]}'
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const tools = createRequire(join(process.env.SLUICE_TEST_TOOLS, "browser", "package.json"));
const { chromium } = tools("playwright-core");
const axe = readFileSync(tools.resolve("axe-core/axe.min.js"), "utf8");

const plan = JSON.parse(process.argv[2]);
const browser = await chromium.launch({
  executablePath: plan.chromium,
  // Whatever the page or the browser would ask for by name is not there.
  args: ["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--hide-scrollbars"],
});

/** In the page: each table as rows of texts, its caption and its head first. */
function readTables() {
  const said = (element) => element.innerText.replace(/\s+/g, " ").trim();
  return [...document.querySelectorAll("table")].map((table) => ({
    caption: table.caption ? said(table.caption) : "",
    head: [...table.querySelectorAll("thead th")].map(said),
    rows: [...table.querySelectorAll("tbody tr")].map((row) => [...row.cells].map(said)),
  }));
}

/** In the page: each picture as its label, with the class and the title of each bar. */
function readPictures() {
  return [...document.querySelectorAll("svg[role=img]")].map((picture) => {
    const bars = [...picture.querySelectorAll("rect")].filter((bar) => bar.querySelector("title"));
    return {
      label: picture.getAttribute("aria-label"),
      bars: bars.map((bar) => [bar.getAttribute("class"), bar.querySelector("title").textContent]),
    };
  });
}

/** In the page: what reaches beyond the window and cannot be scrolled to in a box of its own. */
function findOverflow() {
  const width = document.documentElement.clientWidth;
  const scrolls = (element) => {
    for (let box = element.parentElement; box; box = box.parentElement) {
      if (box !== document.body && ["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return true;
    }
    return false;
  };
  const wide = [...document.querySelectorAll("body *")].filter((element) => {
    const { left, right } = element.getBoundingClientRect();
    return (right > width + 1 || left < -1) && !scrolls(element);
  });
  const found = wide.map((element) => `${element.tagName.toLowerCase()} "${element.textContent.trim().slice(0, 40)}"`);
  const whole = document.documentElement.scrollWidth;
  return whole > width ? [`the page has ${whole} px in ${width}`, ...found] : found;
}

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
  const said = [];
  const requests = [];
  page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said.push(`uncaught: ${error.message}`));
  page.on("request", (request) => requests.push(request.url()));
  page.on("requestfailed", (request) => said.push(`failed: ${request.url()}`));
  page.on("response", (response) => {
    if (response.status() >= 400) said.push(`${response.status()}: ${response.url()}`);
  });
  await page.goto(plan.url, { waitUntil: "load" });
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document));
  const faults = violations.flatMap(({ id, impact, help, nodes }) =>
    nodes.map((node) => `${impact}: ${id}: ${help}: ${node.html} ${node.failureSummary ?? ""}`),
  );
  await page.screenshot({ path: `${plan.shots}-${theme}-${width}.png`, fullPage: true });
  const seen = {
    theme,
    width,
    // What is cut when the page is closed is no fault of the page.
    said: [...said],
    requests: [...requests],
    faults,
    overflow: await page.evaluate(findOverflow),
    paper: await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
    tables: await page.evaluate(readTables),
    text: await page.evaluate(() => document.body.innerText),
    pictures: await page.evaluate(readPictures),
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
