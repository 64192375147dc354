import { expect, it } from "vitest";
import { valueText } from "@/graph/cardValues";

it("a card says of code what that says of itself, or how long it is", () => {
  const body = 'import random\n\ndef rows(rows):\n    """Wrong answers of the same length."""\n';
  expect(valueText(body)).toBe("Wrong answers of the same length.");
  expect(
    valueText("import random\n\n# one digit is changed\ndef rows(rows):\n    return rows\n"),
  ).toBe("one digit is changed");
  expect(valueText("def reward(completions):\n    return [0.0]\n")).toBe("2 lines");
  expect(valueText("{{ prompt }}\n{{ completion }}")).toBe("{{ prompt }}");
  expect(valueText("exact_match")).toBe("exact_match");
});
