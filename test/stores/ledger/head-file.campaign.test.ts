// Every torn write and every flipped bit of a head file.

import './head-file.test.js';
