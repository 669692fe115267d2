// The views of the page: the state of the instance, its named statements, and SQL. The hash of the URL says which one is shown.

/** The views of the page. */
export type Views = {
  /** Shows a part, and its view before. */
  readonly goTo: (id: string) => void;
};

/** The part that a hash names. Words behind a slash belong to the part. */
const partOf = (hash: string) => hash.slice(1).split('/', 1)[0] || 'state';

/** @param entered called with the name of a view after it or a part of it is shown */
export function openViews(entered: (view: string) => void): Views {
  const views = [...document.querySelectorAll<HTMLElement>('[data-view]')];
  const viewOf = (id: string) =>
    document.getElementById(id)?.closest<HTMLElement>('[data-view]') ?? views[0];
  const show = () => {
    const id = partOf(window.location.hash);
    const shown = viewOf(id);
    for (const view of views) view.hidden = view !== shown;
    document.body.dataset.shown = shown?.dataset.view ?? '';
    for (const link of document.querySelectorAll<HTMLAnchorElement>('.views a')) {
      const isShown = viewOf(partOf(link.hash)) === shown;
      if (isShown) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    const part = document.getElementById(id);
    if (id === 'state') window.scrollTo(0, 0);
    else part?.scrollIntoView({ block: 'start' });
    entered(document.body.dataset.shown);
  };
  window.addEventListener('hashchange', show);
  show();
  return {
    goTo: (id) => {
      // The event comes later, and the view must be there at once for the focus.
      if (partOf(window.location.hash) !== id) history.pushState(null, '', `#${id}`);
      show();
    },
  };
}
