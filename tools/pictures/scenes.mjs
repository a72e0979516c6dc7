// The scenes that the pictures show: how each is reached on the page of `turnpike serve --demo`, and what it shows.

import { see, withPage } from './chromium.mjs';

/** The case of the demonstration in which attacks are mixed with work. */
export const CASE = 'case-mixture';
/** Its step in which the agent proposes a script that deletes everything. */
export const STEP = 12;
export const SCRIPT = '/sandbox/notes/cleanup.sh';

const DESK = { name: '1440', width: 1440, height: 900, scale: 1 };
const PHONE = { name: '390', width: 390, height: 844, scale: 2 };

/** Each scene is shown in both sizes and both themes. */
export const SIZES = [DESK, PHONE];
export const SCHEMES = ['light', 'dark'];

/**
 * The run of the case with the attacks, and the entries of its step that was denied.
 * @returns the id of the agent's run, and the number of the entry that ends the step
 */
export function findDeniedStep(browser, demo) {
  return withPage(browser, demo, { size: DESK, scheme: 'light' }, async (page) => {
    await page.locator('[role="treeitem"]').filter({ hasText: CASE }).first().click();
    // The page opens at the newest run, which is an agent's; a run without a dot is the root of a tree.
    await page.waitForURL(/[#&]run=[\w-]+(?:&|$)/);
    const run = `${fragmentOf(page).get('run')}.1`;
    await page.goto('about:blank');
    await page.goto(`${demo.url}/#token=${demo.token}&run=${run}&step=${STEP}&tab=step&filter=%23${STEP}`);
    await page.locator('[role="row"]').filter({ hasText: 'DENIED' }).first().click();
    await page.waitForURL(/[#&]at=/);
    return { run, at: fragmentOf(page).get('at') };
  });
}

const fragmentOf = (page) => new URLSearchParams(new URL(page.url()).hash.slice(1));

/** In their order: the ledger records that the second one reads content, which the first one would show. */
export const SCENES = [
  {
    name: 'proof',
    alt: {
      1440:
        'The state inspector after the browser has verified the ledger: the hash of each entry, the Merkle root and ' +
        'the signature of the checkpoint are checked, and the panel says what that does not prove.',
      390: 'The state inspector on a phone: what this browser recomputed of the ledger, and what that does not prove.',
    },
    view: ({ run }) => `run=${run}`,
    async reach(page, size) {
      await see(page, '.chart', 'completed');
      if (size === DESK) await see(page, '.events .row.move', /stepEnded.*completed/);
      await see(page, '.badge', 'Chain verified');
      await page.locator('.badge').click();
      await see(page, '.popover', 'its signature is valid, the root matches');
    },
  },
  {
    name: 'denied-step',
    alt: {
      1440:
        'The state inspector shows a run of an agent. Its step 12 proposed to write the script cleanup.sh. The ' +
        'statechart of the step shows the path through AUTHORIZE to RESPOND in purple: DENIED, never executed.',
      390:
        'The state inspector on a phone. An agent proposed to write a script with rm -rf, and received DENIED: file ' +
        'extension is not allowed for this action.',
    },
    view: ({ run, at }, size) => `run=${run}&step=${STEP}&at=${at}&tab=${size === DESK ? 'step' : 'story'}`,
    async reach(page, size) {
      await see(page, '.rail .outcome', 'DENIED');
      await see(page, '.badge', 'Chain verified');
      if (size === DESK) {
        await see(page, '.chart', 'VALIDATE_SCHEMA');
        await see(page, '.events .row.move', /stepEnded.*ready/);
        await see(page, '.details .entry', SCRIPT);
        await scrollTo(page, '.details', '.details .entry');
      } else {
        await page.getByRole('button', { name: 'Show content' }).first().click();
        await see(page, '.story', SCRIPT);
        await see(page, '.story .why', 'the extensions of the paths are allowed');
      }
    },
  },
  {
    name: 'approval',
    path: '/approvals',
    fullPage: true,
    alt: {
      1440:
        'The page of approvals shows a request that waits: an export of one case, 0 of 1 approvals, who requested it, ' +
        'who may approve it, the exact request with its digest, and the buttons Approve and Reject.',
      390: 'The page of approvals on a phone shows the exact request of an export, 0 of 1 approvals, and two buttons.',
    },
    view: () => '',
    async reach(page) {
      await see(page, 'article', '0 of 1 approvals');
      await page.getByRole('button', { name: 'Approve' }).waitFor();
    },
  },
];

/** Scrolls a panel so that an element is directly below its head. */
const scrollTo = (page, panel, element) =>
  page.evaluate(
    ([outer, inner]) => {
      const box = document.querySelector(outer);
      const target = document.querySelector(inner);
      const head = box.querySelector('header');
      box.scrollTop += target.getBoundingClientRect().top - head.getBoundingClientRect().bottom;
    },
    [panel, element],
  );

/** Resolves when the page has not changed for a moment; a page that never rests, after the next moment. */
export const waitForRest = (page) =>
  page.evaluate(
    ([quiet, longest]) =>
      new Promise((resolve) => {
        const end = () => {
          watch.disconnect();
          clearTimeout(last);
          resolve();
        };
        let due = setTimeout(end, quiet);
        const last = setTimeout(end, longest);
        const watch = new MutationObserver(() => {
          clearTimeout(due);
          due = setTimeout(end, quiet);
        });
        watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
      }),
    [250, 3_000],
  );

/** Resolves when nothing that the page shows is still being read from the service. */
const waitForContents = (page) =>
  page.waitForFunction(() => {
    const details = document.querySelector('.details');
    const isShown = details?.checkVisibility() === true;
    return (
      !/\b(?:r|R)eading\b[^.]*…/.test(document.body.innerText) &&
      (!isShown || details.querySelector('.entry .json-line') !== null)
    );
  });

/** Resolves when the page shows its contents and has rested. Call it before a view is described. */
export async function settle(page) {
  await waitForContents(page);
  await waitForRest(page);
  await waitForContents(page);
}

/** Waits for a moment in which every entry is verified; the demonstration soon writes new ones. */
const waitForProof = (page) =>
  page
    .waitForFunction(() => !/ new$/.test(document.querySelector('.badge')?.textContent ?? ''), null, { timeout: 5_000 })
    .catch(() => undefined);

/** Opens the page at a scene, and calls `use` when it shows it. */
export const withScene = (browser, demo, denied, { scene, size, scheme }, use) =>
  withPage(
    browser,
    demo,
    { size, scheme, scale: size.scale, path: scene.path, view: scene.view(denied, size) },
    async (page) => {
      await scene.reach(page, size);
      await page.mouse.move(0, 0);
      await settle(page);
      await waitForProof(page);
      return use(page);
    },
  );

/** Every still picture: its scene, size and theme, its file and its text for readers who do not see it. */
export const listStills = () =>
  SCENES.flatMap((scene) =>
    SIZES.flatMap((size) =>
      SCHEMES.map((scheme) => ({
        scene,
        size,
        scheme,
        file: `${scene.name}-${size.name}-${scheme}.webp`,
        alt: scene.alt[size.name],
      })),
    ),
  );
