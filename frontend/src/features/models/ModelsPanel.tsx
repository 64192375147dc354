import { useState } from "react";
import { Here } from "./Here";
import { OnHub } from "./OnHub";
import { useHub } from "./useHub";

export function ModelsPanel() {
  const hub = useHub();
  const [wanted, setWanted] = useState("");
  return (
    <div className="grid h-full min-h-0 grid-cols-[minmax(0,5fr)_minmax(0,6fr)] divide-x divide-line text-sm">
      <Here hub={hub} onLook={setWanted} />
      <OnHub key={wanted} hub={hub} first={wanted} />
    </div>
  );
}
