/** A file that is dropped beside what takes it must not open in place of the page. */
export function preventFileNavigation(): void {
  const prevent = (event: DragEvent): void => {
    if (event.dataTransfer?.types.includes('Files')) event.preventDefault()
  }
  document.addEventListener('dragover', prevent)
  document.addEventListener('drop', prevent)
}
