"""What lives where, and when: liveness, faults and growth in the use of scratch, placement, buffering."""
