/* Sets the theme before the first paint, so that a dark page never flashes white. */
(function () {
  var choice = null;
  try {
    choice = localStorage.getItem("coloop.theme");
  } catch (_) {
    /* storage is blocked: follow the system */
  }
  var dark = choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
