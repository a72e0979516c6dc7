// `npm run pictures`: writes the pictures of docs/pictures, from the page of `turnpike serve --demo` in Chromium.

import { writeBadges } from './badges.mjs';
import { launchChromium } from './chromium.mjs';
import { encodeAnimation, encodeStill } from './encode.mjs';
import { ALT, createCamera, FILM, takeScreenshot } from './film.mjs';
import { writeManifest, writePicture } from './manifest.mjs';
import { listStills } from './scenes.mjs';
import { visitViews } from './views.mjs';

/** Takes every still, and the animation; `views` has the digests of each. */
async function takePictures(browser) {
  const camera = createCamera();
  const pngs = new Map();
  const views = await visitViews(browser, {
    ...camera,
    still: async (page, { file, scene }) => pngs.set(file, await takeScreenshot(page, scene.fullPage === true)),
  });
  const pictures = [];
  for (const { file, alt } of listStills()) {
    const facts = { alt, shows: views[file] };
    pictures.push(writePicture(file, await encodeStill(pngs.get(file)), facts));
  }
  const { frames } = camera;
  const milliseconds = frames.reduce((sum, { ms }) => sum + ms, 0);
  const facts = { frames: frames.length, milliseconds, alt: ALT, shows: views[FILM] };
  return [...pictures, writePicture(FILM, await encodeAnimation(frames), facts)];
}

const browser = await launchChromium();
try {
  const pictures = await takePictures(browser);
  writeManifest(pictures);
  writeBadges();
  for (const [name, { width, height, bytes }] of pictures)
    process.stdout.write(`${name} ${width} x ${height}, ${bytes} bytes\n`);
} finally {
  await browser.close();
}
