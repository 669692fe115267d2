// The token, where the instance wants one: asked for once, kept for as long as the tab lives.
import { find, setText } from './elements.ts';

const key = 'dbhttpd.token';

/** The token and its form. */
export type TokenForm = {
  readonly read: () => string | null;
  /** The gateway wants a token, or another one than this, which was sent. */
  readonly wanted: (sent: string | null) => void;
  readonly accepted: () => void;
};

/** @param onGiven called when there is a token to try, or none any more */
export function startToken(onGiven: () => void): TokenForm {
  const form = find('token', HTMLFormElement);
  const field = find('token-field', HTMLInputElement);
  const text = find('token-text', HTMLElement);
  const forget = find('forget', HTMLButtonElement);
  const read = () => sessionStorage.getItem(key);
  const showForget = () => {
    forget.hidden = read() === null;
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const token = field.value.trim();
    field.value = '';
    if (token === '') return;
    sessionStorage.setItem(key, token);
    onGiven();
  });
  forget.addEventListener('click', () => {
    sessionStorage.removeItem(key);
    showForget();
    onGiven();
  });
  showForget();
  return {
    read,
    wanted: (sent) => {
      // There is a newer one, which has not been tried yet.
      if (sent !== read()) return;
      const isRefused = sent !== null;
      sessionStorage.removeItem(key);
      showForget();
      if (isRefused) setText(text, 'This token was not accepted.');
      else if (form.hidden) setText(text, 'This instance is guarded by a token.');
      if (form.hidden) {
        form.hidden = false;
        field.focus();
      }
    },
    accepted: () => {
      form.hidden = true;
      setText(text, '');
      showForget();
    },
  };
}
