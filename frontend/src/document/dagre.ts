/** What `layout.ts` arranges boxes by. */
import { graphlib, layout } from "@dagrejs/dagre";
import { arrangeBy } from "./layout";

arrangeBy({ graphlib, layout });
