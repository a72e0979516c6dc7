// The animation: what a reader of the page does in twenty seconds, in a demonstration that has just started.

import { see, withPage } from './chromium.mjs';
import { CASE, SCRIPT, STEP, waitForRest } from './scenes.mjs';

const CAPTION_HEIGHT = 46;
/** Wide enough for the names of all phases. */
const SIZE = { width: 1280, height: 800 - CAPTION_HEIGHT };

export const FILM = 'demo.webp';

export const ALT =
  'Twenty seconds of the state inspector: steps of agents arrive; a run is opened; its step 12 was denied, because it ' +
  'proposed a script; an export waits for a vote and is approved; the browser verifies the ledger.';

/** The moments whose views are described: the animation is older than the page when one of them has changed. */
export const MOMENTS = ['a run', 'a denied step', 'its reason', 'a request', 'a vote', 'a proof'];

/**
 * Plays the animation on a page.
 * @param camera `frame(page, ms, caption, pointer)` for each picture, `moment(page, name, part)` for each of MOMENTS
 */
export const playFilm = (browser, demo, camera) =>
  withPage(browser, demo, { size: SIZE, scheme: 'light' }, async (page) => {
    await showLiveRuns(page, camera);
    await showDeniedStep(page, camera);
    await showVote(page, camera);
    await showProof(page, camera);
  });

async function showLiveRuns(page, camera) {
  const caption = 'Agents propose. Policy decides each step before it happens.';
  await see(page, '.badge', 'Chain verified');
  await see(page, '.chart', 'stepping');
  for (let step = 0; step < 4; step += 1) {
    await camera.frame(page, 600, caption);
    await page.waitForTimeout(camera.isRecording ? 1_000 : 0);
  }
  const tree = page.locator('[role="treeitem"]').filter({ hasText: CASE });
  await tree.locator('.turn').click();
  await click(page, camera, page.locator(`[role="treeitem"]:has-text("${CASE}") + [role="treeitem"]`), caption);
  await see(page, '.crumbs .pill', 'completed');
  await see(page, '.chart', 'completed');
  await see(page, '.events .row.move', /stepEnded.*completed/);
  await camera.moment(page, 'a run');
  await camera.frame(page, 1_400, 'One run: an agent with 81 steps. What was denied?');
}

async function showDeniedStep(page, camera) {
  const asked = 'One run: an agent with 81 steps. What was denied?';
  await page.getByRole('tab', { name: /^Step machine/ }).click();
  await page.getByRole('searchbox').pressSequentially('denied');
  await waitForRest(page);
  await camera.frame(page, 700, asked);
  const row = page
    .locator('[role="row"]')
    .filter({ hasText: `#${STEP}` })
    .first();
  await click(page, camera, row, asked);
  await see(page, '.rail .outcome', 'DENIED');
  await see(page, '.details .entry', SCRIPT);
  await camera.moment(page, 'a denied step');
  await camera.frame(page, 2_600, `Step ${STEP}: AUTHORIZE denied it, and EXECUTE never ran.`);
  await click(page, camera, page.getByRole('tab', { name: 'Agent’s view' }), `Step ${STEP}: AUTHORIZE denied it.`);
  await see(page, '.story .why', 'the extensions of the paths are allowed');
  await click(page, camera, page.getByRole('button', { name: 'Show content' }).first(), 'What did the agent propose?');
  await see(page, '.story', SCRIPT);
  await camera.frame(page, 2_200, 'It proposed a script with rm -rf /, and received the reason.');
  await page.locator('.story .why li').filter({ hasText: 'the extensions of the paths' }).scrollIntoViewIfNeeded();
  await page.mouse.move(0, 0);
  await camera.moment(page, 'its reason');
  await camera.frame(page, 2_200, 'Every check in its order, and the one that failed, with its line of policy.');
}

async function showVote(page, camera) {
  await page.getByRole('link', { name: 'Approvals' }).click();
  await see(page, 'article', '0 of 1 approvals');
  await camera.moment(page, 'a request');
  const caption = 'What needs a person waits. The vote is for exactly this request.';
  await camera.frame(page, 1_800, caption);
  await click(page, camera, page.getByRole('button', { name: 'Approve' }), caption);
  await click(page, camera, page.getByRole('button', { name: 'Yes, approve' }), caption);
  await see(page, '.vote-notice', 'The export is completed');
  await page.evaluate(() => scrollTo(0, 0));
  await camera.moment(page, 'a vote');
  await camera.frame(page, 1_800, 'One vote, one execution: the export is completed.');
}

async function showProof(page, camera) {
  const caption = 'This browser recomputes every hash, and checks the signature.';
  await page.getByRole('link', { name: 'State inspector' }).click();
  await see(page, '.badge', /Verifying|Chain verified/);
  await camera.frame(page, 500, caption);
  await see(page, '.badge', 'Chain verified');
  await click(page, camera, page.locator('.badge'), caption);
  await see(page, '.popover', 'its signature is valid, the root matches');
  // Behind the panel is the newest run, which differs from one start to the next.
  await camera.moment(page, 'a proof', '.popover');
  await camera.frame(page, 2_800, caption);
}

/** Shows the pointer on its way to an element, and clicks there. */
async function click(page, camera, target, caption) {
  await target.scrollIntoViewIfNeeded();
  await waitForRest(page);
  const box = await target.boundingBox();
  const pointer = { x: box.x + Math.min(box.width / 2, 60), y: box.y + box.height / 2 };
  await camera.frame(page, 450, caption, pointer);
  await target.click();
  await waitForRest(page);
}

export const takeScreenshot = (page, fullPage = false) =>
  page.screenshot({ fullPage, animations: 'disabled', caret: 'hide' });

/** Records the frames of a film, with their captions and the pointer. */
export function createCamera() {
  const frames = [];
  return {
    isRecording: true,
    frames,
    async frame(page, ms, caption, pointer) {
      const png = await takeScreenshot(page);
      const overlays = [{ svg: captionSvg(caption), left: 0, top: SIZE.height }];
      if (pointer !== undefined)
        overlays.push({ svg: POINTER, left: Math.round(pointer.x), top: Math.round(pointer.y) });
      frames.push({ png, ms, captionHeight: CAPTION_HEIGHT, overlays });
    },
  };
}

const captionSvg = (text) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${SIZE.width}" height="${CAPTION_HEIGHT}">` +
  '<rect width="100%" height="100%" fill="#14181f"/>' +
  `<text x="50%" y="29" text-anchor="middle" font-family="system-ui, sans-serif" font-size="18" fill="#ffffff">` +
  `${text}</text></svg>`;

const POINTER =
  '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="28" viewBox="0 0 12 14">' +
  '<path d="M1 1v10.2l2.6-2.4 1.8 4.1 1.9-.8-1.8-4h3.6z" fill="#14181f" stroke="#ffffff" stroke-width=".8"/></svg>';
