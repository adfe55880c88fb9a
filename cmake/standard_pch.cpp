// Carries the precompiled header that all units without tensors share (cmake/HetseqLayer.cmake).
