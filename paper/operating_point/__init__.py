"""Does one cross-entropy run predict the lam to train with?"""
