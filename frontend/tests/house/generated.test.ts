import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { typesOf } from "../../scripts/types.mjs";

it("the types of the API are those of openapi.json", async () => {
  const types = await typesOf(readFileSync("openapi.json", "utf-8"));

  expect(readFileSync("src/api/schema.gen.ts", "utf-8") === types, "run `npm run typegen`").toBe(
    true,
  );
});
