/** What stands in a field goes into the loop when the field is left: before the loop is run or exported. */
export function leaveField(): void {
  const field = document.activeElement;
  if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) field.blur();
}
