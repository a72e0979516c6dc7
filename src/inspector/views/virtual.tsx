// A list of which only what is in sight is drawn, however long it is.

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { scrolledTo, windowOf } from '../store/window.js';

interface VirtualProps {
  readonly count: number;
  readonly row: number;
  /** What must be in sight: it is scrolled to when it changes. */
  readonly place: number;
  readonly draw: (place: number) => ComponentChildren;
  readonly attributes: Record<string, string | number | undefined>;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
}

export function Virtual({ count, row, place, draw, attributes, onKeyDown }: VirtualProps) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  useLayoutEffect(() => {
    const { current } = box;
    if (current === null) return;
    const watch = new ResizeObserver(() => setHeight(current.clientHeight));
    watch.observe(current);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    const { current } = box;
    if (current === null || place < 0) return;
    const wanted = scrolledTo(place, current.scrollTop, current.clientHeight, row);
    if (wanted !== current.scrollTop) current.scrollTop = wanted;
    setTop(current.scrollTop);
  }, [place, height, row]);
  const { from, to } = windowOf(count, top, height, row);
  const shown = Array.from({ length: to - from }, (_, at) => from + at);
  return (
    <div
      ref={box}
      class="virtual"
      tabIndex={0}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
      {...attributes}
    >
      <div class="virtual-room" role="presentation" style={{ height: `${count * row}px` }}>
        <div class="virtual-rows" role="presentation" style={{ transform: `translateY(${from * row}px)` }}>
          {shown.map(draw)}
        </div>
      </div>
    </div>
  );
}
