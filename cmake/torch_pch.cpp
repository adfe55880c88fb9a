// Carries the precompiled header that all units using tensors share (cmake/HetseqLayer.cmake).
