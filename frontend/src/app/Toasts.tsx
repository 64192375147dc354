import { Toaster } from "sonner";
import { useResolvedTheme } from "@/session/theme";

/** Where messages appear. */
export function Toasts() {
  const theme = useResolvedTheme();
  return (
    <Toaster
      theme={theme}
      position="bottom-center"
      visibleToasts={3}
      expand
      offset={44}
      duration={2500}
      className="toasts"
    />
  );
}
