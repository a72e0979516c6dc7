// A list of any length that draws only its visible rows.

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { scrollTopFor, slotCountFor, rowWindowOf } from '../../store/rows/row-window.js';
import { useSize } from './use-size.js';

interface VirtualListProps {
  readonly count: number;
  readonly row: number;
  /** The place that must be visible: the list scrolls there when it changes. */
  readonly place: number;
  /** `slot` is the key of the element that shows a place. It is reused once the place is no longer visible. */
  readonly draw: (place: number, slot: number) => ComponentChildren;
  readonly attributes: Record<string, string | number | undefined>;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
}

export function VirtualList({ count, row, place, draw, attributes, onKeyDown }: VirtualListProps) {
  const { box, height } = useSize(400);
  const [, drawAgain] = useState(0);
  const view = useRef({ of: '', top: 0 });
  const of = `${place} ${height} ${row}`;
  // The scroll position is computed before drawing, so that the list is drawn once.
  if (of !== view.current.of && place >= 0)
    view.current = {
      of,
      top: Math.min(Math.max(0, count * row - height), scrollTopFor(place, view.current.top, height, row)),
    };
  const { top } = view.current;
  useLayoutEffect(() => {
    if (box.current !== null && place >= 0) box.current.scrollTop = top;
  }, [of]);
  const onScroll = ({ currentTarget: { scrollTop } }: { readonly currentTarget: HTMLElement }): void => {
    if (Math.abs(scrollTop - view.current.top) < 1) return;
    view.current.top = scrollTop;
    drawAgain(scrollTop);
  };
  const { from, to } = rowWindowOf(count, top, height, row);
  const shown = Array.from({ length: to - from }, (_, at) => from + at);
  const slots = slotCountFor(height, row);
  return (
    <div ref={box} class="virtual" tabIndex={0} onScroll={onScroll} onKeyDown={onKeyDown} {...attributes}>
      <div class="virtual-room" role="presentation" style={{ height: `${count * row}px` }}>
        <div class="virtual-rows" role="presentation" style={{ transform: `translateY(${from * row}px)` }}>
          {shown.map((at) => draw(at, at % slots))}
        </div>
      </div>
    </div>
  );
}
