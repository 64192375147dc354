import { useDialogs } from "@/session/dialogs";
import { Dialog } from "@/ui/Dialog";
import { Gallery } from "./Gallery";

export function GalleryDialog() {
  const isOpen = useDialogs((state) => state.open === "gallery");
  const show = useDialogs((state) => state.show);
  return (
    <Dialog
      title="Presets"
      description="Open any preset; your first change saves it as your own loop. The loop that is open now stays as it is."
      isOpen={isOpen}
      onClose={() => show(null)}
      width="max-w-5xl"
    >
      <Gallery onOpened={() => show(null)} />
    </Dialog>
  );
}
