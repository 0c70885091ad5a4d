// Keeps an open page as it would be if it were loaded now. Without this script, or where events do not come through, the
// page is the same and is loaded by hand.
"use strict";

(() => {
  const note = document.getElementById("live");
  if (!note || !window.EventSource) return;

  const parts = ["summary", "view", "acts", "foot"];
  let isWanted = false;
  let isUnderWay = false;
  let timer = null;
  let tag = null;

  const say = (text) => {
    if (note.textContent !== text) note.textContent = text;
  };

  // What somebody reads must not move: the focus, and how far boxes are scrolled.
  const place = () => ({
    focus: document.activeElement?.id,
    scrolled: [...document.querySelectorAll(".scroll")].map((box) => [box.id, box.scrollLeft]),
  });
  const restore = ({ focus, scrolled }) => {
    for (const [id, left] of scrolled) {
      const box = document.getElementById(id);
      if (box) box.scrollLeft = left;
    }
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  };

  // Nor is anything taken away that somebody is writing.
  const isWrittenIn = (part) => [...part.querySelectorAll("input")].some((field) => field.value !== field.defaultValue);

  const show = (next) => {
    const before = place();
    for (const id of parts) {
      const [old, young] = [document.getElementById(id), next.getElementById(id)];
      if (!old || !young || old.innerHTML === young.innerHTML || isWrittenIn(old)) continue;
      old.replaceWith(document.adoptNode(young));
    }
    restore(before);
  };

  const look = async () => {
    if (isUnderWay || document.hidden) {
      isWanted = true;
      return;
    }
    isUnderWay = true;
    isWanted = false;
    try {
      const headers = tag ? { "if-none-match": tag } : {};
      const answer = await fetch(location.pathname + location.search, { cache: "no-store", headers });
      // Whoever is no longer logged in is sent to do so.
      if (answer.redirected) return location.reload();
      if (!answer.ok && answer.status !== 304) throw new Error(`HTTP ${answer.status}`);
      if (answer.ok) {
        show(new DOMParser().parseFromString(await answer.text(), "text/html"));
        tag = answer.headers.get("etag");
      }
      say(timer ? "This page looks again every 30 s." : "This page updates itself.");
    } catch {
      say("The control plane does not answer; what is shown may be old.");
    } finally {
      isUnderWay = false;
    }
    if (isWanted) look();
  };

  const events = new EventSource(note.dataset.events ?? "/api/v1/events");
  events.addEventListener("open", () => say("This page updates itself."));
  events.addEventListener("view", look);
  events.addEventListener("error", () => {
    if (events.readyState !== EventSource.CLOSED) {
      say("The connection is lost and is tried again; what is shown may be old.");
    } else if (!timer) {
      timer = setInterval(look, 30_000);
      say("This page looks again every 30 s.");
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isWanted) look();
  });
})();
