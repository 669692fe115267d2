// Texts and files that leave the page.
import { closer, element, openDialog } from './elements.ts';

/** Copies a text, or shows it if the browser allows no access to the clipboard (plain HTTP beyond loopback). */
export async function copyText(title: string, text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = element('textarea', { rows: 8, readonly: true, 'aria-label': title }, text);
    const dialog: HTMLDialogElement = openDialog(
      title,
      field,
      element(
        'p',
        { class: 'answers' },
        closer('Close', () => dialog),
      ),
    );
    field.select();
    return false;
  }
}

/** Has the browser save a file. */
export function saveFile(name: string, contents: Blob): void {
  const url = URL.createObjectURL(contents);
  element('a', { href: url, download: name }).click();
  // The download has begun when the click returns, and reads the blob, not its URL.
  window.setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
