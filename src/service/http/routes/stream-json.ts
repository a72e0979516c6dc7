/** Characters of a piece: fewer would be more writes, more would be more memory. */
const PIECE_CHARS = 16_384;

export interface ListedJson {
  /** Members that come before the list. */
  readonly before?: object;
  /** The name of the list. */
  readonly name: string;
  /** What it has. The members that come behind it are what the generator returns. */
  readonly items: AsyncGenerator<unknown, object>;
}

/** An object with one long list as JSON, in pieces: no more of the list is made than has been read. */
export async function* streamJson({ before = {}, name, items }: ListedJson): AsyncGenerator<string> {
  const members = JSON.stringify(before).slice(1, -1);
  let piece = `{${members}${members === '' ? '' : ','}${JSON.stringify(name)}:[`;
  let isFirst = true;
  try {
    for (;;) {
      const item = await items.next();
      if (item.done === true) {
        const trailer = JSON.stringify(item.value).slice(1, -1);
        yield `${piece}]${trailer === '' ? '' : ','}${trailer}}`;
        return;
      }
      piece += `${isFirst ? '' : ','}${JSON.stringify(item.value)}`;
      isFirst = false;
      if (piece.length < PIECE_CHARS) continue;
      yield piece;
      piece = '';
    }
  } finally {
    await items.return({});
  }
}
