// C88: characters that a person cannot see or that change the order of others. The ranges are data of this file,
// independent of the running Node: Default_Ignorable_Code_Point of Unicode 15.0, which includes the zero-width
// characters, the bidi controls, the tags and the variation selectors; line and paragraph separator; and the marks of
// interlinear annotation. A test compares them with the tables of src/names.

/** First and last code point of each range, ascending. */
export const INVISIBLE_RANGES: readonly (readonly [number, number])[] = [
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0x1bca0, 0x1bca3],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff],
];

export function hasInvisibleCharacter(text: string): boolean {
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    if (point >= 0xad && INVISIBLE_RANGES.some(([first, last]) => first <= point && point <= last)) return true;
  }
  return false;
}
