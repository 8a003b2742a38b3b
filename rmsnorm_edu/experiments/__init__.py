"""Small trainings on real data; what they find is recorded for the book's pages.

- `data`: the data sets and their loaders
- `translation`: a small English-German translator with norms inside
- `hidden_statistics`: the paper's Table 5, what the decoder's state is multiplied to
"""
