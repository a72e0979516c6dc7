// Visits every view that a picture shows, and describes it. The program and its test do the same visits.

import { startDemo } from './demo-service.mjs';
import { describeView, digestView } from './describe-view.mjs';
import { FILM, playFilm } from './film.mjs';
import { findDeniedStep, listStills, settle, withScene } from './scenes.mjs';

/**
 * @param camera `isRecording`, `frame` for the frames of the animation, and `still(page, still)` for each still
 * @param report receives the full description of each view: the file of its picture, the moment of the animation
 * @returns for each still its digests; for the animation those of each of its moments
 */
export async function visitViews(browser, camera, report = () => undefined) {
  const views = {};
  const describe = async (page, file, moment, part) => {
    const description = await describeSettledView(page, part);
    report(file, moment, description);
    return digestView(description);
  };
  await withDemo(async (demo) => {
    const denied = await findDeniedStep(browser, demo);
    for (const still of listStills()) {
      await withScene(browser, demo, denied, still, async (page) => {
        views[still.file] = await describe(page, still.file, '');
        await camera.still(page, still);
      });
    }
  });
  const moments = {};
  await withDemo((demo) =>
    playFilm(browser, demo, {
      ...camera,
      moment: async (page, name, part) => (moments[name] = await describe(page, FILM, name, part)),
    }),
  );
  return { ...views, [FILM]: moments };
}

/** The proof runs behind the entries that the demonstration writes, and says so for a moment. */
const PASSING = /^ul\.checks > li\.ahead|button\.badge\.[\w.]*verifying/;
const TRIES = 100;
const PAUSE_MS = 150;

async function describeSettledView(page, part) {
  await settle(page);
  for (let tries = 0; tries < TRIES; tries += 1) {
    const description = await describeView(page, part);
    if (!description.structure.some((line) => PASSING.test(line))) return description;
    await page.waitForTimeout(PAUSE_MS);
  }
  throw new Error('the proof never reached the newest checkpoint');
}

/** The animation has a demonstration of its own, because its vote ends the request that a still shows. */
async function withDemo(use) {
  const demo = await startDemo();
  try {
    await use(demo);
  } finally {
    await demo.close();
  }
}
