"use strict";
// Dark or light: as the reader chose on any page of the site, which its theme, Material for MkDocs, keeps under this key; else as the system has it.

(() => {
  const KEY = `${new URL("..", location).pathname}.__palette`;
  const SCHEMES = { light: "default", dark: "slate" };
  const system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement.dataset;
  let chosen = null;

  /** Return the theme of the site, where one has been kept. */
  function kept() {
    try {
      const { scheme } = JSON.parse(localStorage.getItem(KEY)).color;
      return Object.keys(SCHEMES).find((theme) => SCHEMES[theme] === scheme);
    } catch {
      return chosen;
    }
  }

  function show() {
    root.theme = kept() || (system.matches ? "dark" : "light");
    dispatchEvent(new Event("theme"));
  }

  /** Change to the other theme, on all pages of the site. */
  globalThis.MazePlay.changeTheme = () => {
    chosen = root.theme === "dark" ? "light" : "dark";
    const media = `(prefers-color-scheme: ${chosen})`, color = { media, scheme: SCHEMES[chosen], primary: "indigo", accent: "indigo" };
    try {
      localStorage.setItem(KEY, JSON.stringify({ index: Object.keys(SCHEMES).indexOf(chosen), color }));
    } catch {} // a browser that keeps nothing
    show();
  };

  addEventListener("storage", ({ key }) => key === KEY && show()); // of another page, such as that around this one
  system.addEventListener("change", show);
  show();
})();
