// Compresses screenshots. The only file that uses sharp.

import sharp from 'sharp';

/** Text on flat surfaces is smaller without loss than with it, and sharper. */
const LOSSLESS = { lossless: true, effort: 6 };

/** @returns the picture as WebP, and its size in pixels */
export async function encodeStill(png) {
  const { data, info } = await sharp(png).webp(LOSSLESS).toBuffer({ resolveWithObject: true });
  return { data, width: info.width, height: info.height };
}

/**
 * @param frames screenshots of one size, each with its duration in milliseconds and what is drawn over it
 * @returns the animation as WebP, which repeats without an end, and its size in pixels
 */
export async function encodeAnimation(frames) {
  const drawn = [];
  for (const { png, captionHeight, overlays } of frames) {
    const extended = sharp(png).extend({ bottom: captionHeight, background: '#14181f' });
    const layers = overlays.map(({ svg, left, top }) => ({ input: Buffer.from(svg), left, top }));
    drawn.push(
      await sharp(await extended.png().toBuffer())
        .composite(layers)
        .removeAlpha()
        .png()
        .toBuffer(),
    );
  }
  const { data, info } = await sharp(drawn, { join: { animated: true } })
    .webp({ ...LOSSLESS, minSize: true, loop: 0, delay: frames.map(({ ms }) => ms) })
    .toBuffer({ resolveWithObject: true });
  return { data, width: info.width, height: info.pageHeight ?? info.height / frames.length };
}
