import { useEffect } from "react";
import { Toaster, toast } from "sonner";
import { useResolvedTheme } from "@/session/theme";
import { showToastsBy } from "@/session/toast";

/** Where messages appear. */
export function Toasts() {
  const theme = useResolvedTheme();
  // After the effects of what is inside: from here on it listens.
  useEffect(() => showToastsBy(toast), []);
  return (
    <Toaster theme={theme} position="bottom-center" visibleToasts={3} offset={44} duration={2500} />
  );
}
