// What is judged of a page in a real browser, and the browser to look with.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const tools = createRequire(join(process.env.SLUICE_TEST_TOOLS, "browser", "package.json"));
const { chromium } = tools("playwright-core");
const axe = readFileSync(tools.resolve("axe-core/axe.min.js"), "utf8");

/** A browser. */
export function launch(executablePath) {
  // Whatever the page or the browser would ask for by name is not there.
  const args = ["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--hide-scrollbars"];
  return chromium.launch({ executablePath, args });
}

/** What a page says on the console and whom it calls, from now on. */
export function listen(page) {
  const said = [];
  const requests = [];
  page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said.push(`uncaught: ${error.message}`));
  page.on("request", (request) => requests.push(request.url()));
  // A stream that the page leaves behind when another is loaded is no fault.
  const isLeft = (request) => request.resourceType() === "eventsource" || request.failure()?.errorText === "net::ERR_ABORTED";
  page.on("requestfailed", (request) => isLeft(request) || said.push(`failed: ${request.url()}`));
  page.on("response", (response) => {
    if (response.status() >= 400) said.push(`${response.status()}: ${response.url()}`);
  });
  return { said, requests };
}

/** What the page shows, what axe finds, what is wider than the window. */
export async function see(page, shot) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document));
  const faults = violations.flatMap(({ id, impact, help, nodes }) =>
    nodes.map((node) => `${impact}: ${id}: ${help}: ${node.html} ${node.failureSummary ?? ""}`),
  );
  await page.screenshot({ path: shot, fullPage: true });
  return {
    faults,
    overflow: await page.evaluate(findOverflow),
    paper: await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
    tables: await page.evaluate(readTables),
    text: await page.evaluate(() => document.body.innerText),
    pictures: await page.evaluate(readPictures),
  };
}

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
