// Windows over the page, which keep the keyboard until they are closed and give it back then.
import { button, type Content, element } from './elements.ts';

/** Opens one that only tells. It goes from the page when it is closed. */
export function openDialog(title: string, ...contents: readonly Content[]): HTMLDialogElement {
  const heading = element('h2', { id: 'dialog-title' }, title);
  const dialog = element('dialog', { 'aria-labelledby': 'dialog-title' }, heading, ...contents);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A button that closes it. */
export function closer(label: string, dialog: () => HTMLDialogElement): HTMLButtonElement {
  return button(label, {}, () => dialog().close());
}

/** Asks whether something is to be done. The careful answer has the keyboard. */
export function askToConfirm(
  title: string,
  contents: readonly Content[],
  answers: { readonly yes: string; readonly no: string },
): Promise<boolean> {
  return new Promise((resolve) => {
    let isYes = false;
    const yes = button(answers.yes, { class: 'danger' }, () => {
      isYes = true;
      dialog.close();
    });
    const no = button(answers.no, { autofocus: true }, () => dialog.close());
    const dialog = openDialog(title, ...contents, element('p', { class: 'answers' }, no, yes));
    dialog.addEventListener('close', () => resolve(isYes));
  });
}
