/** What a terminal shows after this text: the lines that are not empty. Knows `\r`, `\n` and the deletion of a line. */
export function terminalScreen(text: string): readonly string[] {
  const lines: string[] = [''];
  let column = 0;
  for (const [piece] of text.matchAll(/\u001b\[K|\r|\n|[^\r\n\u001b]+/gu)) {
    const row = lines.length - 1;
    const line = lines[row] ?? '';
    if (piece === '\n') {
      lines.push('');
      column = 0;
    } else if (piece === '\r') column = 0;
    else if (piece === '\u001b[K') lines[row] = line.slice(0, column);
    else {
      lines[row] = line.slice(0, column) + piece + line.slice(column + piece.length);
      column += piece.length;
    }
  }
  return lines.filter((line) => line !== '');
}
