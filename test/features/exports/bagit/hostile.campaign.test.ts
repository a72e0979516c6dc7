// Every seventh byte of an archive is changed.

import './hostile.test.js';
