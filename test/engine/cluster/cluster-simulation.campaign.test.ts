// All 60 seeds.
import './cluster-simulation.test.js';
