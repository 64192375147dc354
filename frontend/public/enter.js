/* Takes a token out of the address before anything else is loaded, so that it stays neither in the
   address bar nor in the history of the tab; the page exchanges it for a ticket (src/api/ticket.ts). */
(function () {
  function take() {
    var address = new URL(location.href);
    var behind = new URLSearchParams(address.hash.slice(1));
    var token = behind.get("token") || address.searchParams.get("token");
    if (!token) return;
    address.searchParams.delete("token");
    if (behind.has("token")) {
      behind.delete("token");
      address.hash = behind.toString();
    }
    history.replaceState(history.state, "", address.href.replace(/#$/, ""));
    window.coloopToken = token;
    dispatchEvent(new Event("coloop:token"));
  }
  take();
  /* An address that differs from the one shown only behind its # does not load the page again. */
  addEventListener("hashchange", take);
})();
